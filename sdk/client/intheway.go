package client

import "fmt"

// InTheWay is what keeps pushes to the target from getting on, as far as the host knows: why it is held, fenced or refused, else the error of the call
// that is being made again, else why its plugin does not work, else why the last push failed. "" = nothing is known to be in the way.
func (t TargetView) InTheWay() string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Running != nil && t.Running.Error != "":
		return t.Running.Error
	case t.Plugin != nil && t.Plugin.ailing() && t.Plugin.LastExit != "":
		return fmt.Sprintf("target %q: plugin %s is %s: %s", t.Target, t.Plugin.Name, t.Plugin.State, t.Plugin.LastExit)
	case t.Plugin != nil && t.Plugin.ailing():
		return fmt.Sprintf("target %q: plugin %s is %s", t.Target, t.Plugin.Name, t.Plugin.State)
	case t.Running == nil && len(t.Jobs) > 0:
		return t.Jobs[len(t.Jobs)-1].Error
	}
	return ""
}

func (p PluginView) ailing() bool { return p.State != "ready" && p.State != "starting" }
