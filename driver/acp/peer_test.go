package acp

const peerVerb = "__peer"

func peerMain([]string) int { return 0 }
