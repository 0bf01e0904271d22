package view

// Layer is one of the three mechanisms that restrict an agent.
type Layer struct {
	Name  string `json:"name"` // rules, sandbox, check
	Holds bool   `json:"holds"`
	Text  string `json:"text"`
}
