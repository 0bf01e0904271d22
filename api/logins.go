package api

import "time"

// LoginBody is a code to exchange for a secret.
type LoginBody struct {
	Code string `json:"code" minLength:"1" maxLength:"32" example:"K7QM-2XDP" doc:"The code that fairlead open issued; case, spaces and hyphens do not matter"`
	Name string `json:"name,omitempty" maxLength:"200" example:"Firefox on Linux" doc:"How the browser describes itself, for the list of logins"`
}

// LoginCode is a code that signs one browser in.
type LoginCode struct {
	Code      string    `json:"code" example:"K7QM-2XDP" doc:"Valid once"`
	ExpiresAt time.Time `json:"expires_at" doc:"The code is not valid from this time on"`
}

// LoginSecret is what a browser sends as a bearer token from then on.
type LoginSecret struct {
	ID     string `json:"id" example:"l3" doc:"For the list of logins"`
	Secret string `json:"secret" doc:"It is shown once and stored nowhere; send it as Authorization: Bearer SECRET"`
}

// Login is a browser that is signed in.
type Login struct {
	ID        string    `json:"id" example:"l3"`
	Name      string    `json:"name" example:"Firefox on Linux" doc:"As the browser described itself"`
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at" doc:"The last request; after a restart of the daemon up to an hour too early"`
}

// Logins are the browsers that are signed in, the oldest first.
type Logins struct {
	Logins []Login `json:"logins"`
}

// LoginRevoked is the answer to a revocation.
type LoginRevoked struct {
	ID string `json:"id" example:"l3"`
}
