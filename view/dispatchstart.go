package view

// Layer is one of the three things that keep MAIN from what it may not do.
type Layer struct {
	Name  string `json:"name"` // rules, sandbox, check
	Holds bool   `json:"holds"`
	Text  string `json:"text"`
}
