//go:build !linux

package claudehook

func playProcess() {}
