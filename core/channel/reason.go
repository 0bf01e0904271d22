package channel

// WaitReason is the code for why an agent waits in its turn. If it is empty, the agent requested the
// wait, and Lease.Why contains its text.
type WaitReason string

// WaitPermission is a wait for the answer to a permission question.
const WaitPermission WaitReason = "permission"
