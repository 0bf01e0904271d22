//go:build !linux

package claude

func playProcess() {}
