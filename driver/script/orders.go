package script

import "github.com/fairlead-dev/fairlead/driver/speech"

// Order is one line on the agent's standard input.
type Order = speech.Order

// Orders to an agent.
const (
	OrderStart  = speech.OrderStart
	OrderPrompt = speech.OrderPrompt
	OrderSteer  = speech.OrderSteer
	OrderAnswer = speech.OrderAnswer
	OrderCancel = speech.OrderCancel
)
