package view

// Shell is what `fairlead shell` needs to start a program in the view of an agent or of a task.
type Shell struct {
	Agent   string   `json:"agent" doc:"Whose view it is"`
	Task    string   `json:"task,omitempty" doc:"The task in whose folder it is; empty: the agent's own workspace"`
	Dir     string   `json:"dir" doc:"The folder in which the program starts"`
	Shell   string   `json:"shell" doc:"The shell of the person, if the view has it; otherwise bash or sh"`
	View    string   `json:"view" doc:"The view, as JSON for a program of the same version"`
	Env     []string `json:"env" doc:"The environment of the program, complete"`
	Lock    string   `json:"lock" doc:"Where the caller moves a file of which it holds a lock (flock) while the program runs; if there is none within 30 seconds, the shell is over"`
	Made    string   `json:"made" doc:"The folder that names what was made for views"`
	Network string   `json:"network,omitempty" doc:"What the caller tells the proxy of the view's network, as JSON for a program of the same version; empty: it has the machine's"`
	Notes   []string `json:"notes" doc:"What a person should know before it starts"`
}
