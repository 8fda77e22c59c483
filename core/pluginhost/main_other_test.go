//go:build !linux

package pluginhost

func playOnLinux(string) {}
