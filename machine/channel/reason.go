package channel

// WaitReason is the code for why an agent waits in its turn. Empty: the agent said itself that it
// waits, and Lease.Why has its words.
type WaitReason string

// WaitPermission is a wait for a person to answer a question for permission.
const WaitPermission WaitReason = "permission"
