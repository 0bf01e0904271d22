package config

import (
	"fmt"
	"reflect"
	"slices"
)

// Changes returns what differs between two configurations, one line for each agent, channel and section
// that was added, removed or changed. Equal settings in another order or at other lines are no change.
func Changes(before, now *Config) []string {
	lines := []string{}
	changed := func(what string, before, now any) {
		if !reflect.DeepEqual(before, now) {
			lines = append(lines, what+" changed")
		}
	}
	changed("team", before.Team, now.Team)
	lines = append(lines, named("agent", byName(before.Agents, agentName), byName(now.Agents, agentName))...)
	lines = append(lines, named("channel", byName(before.Channels, channelName), byName(now.Channels, channelName))...)
	changed("dispatch", before.Dispatch, now.Dispatch)
	changed("tasks", before.Tasks, now.Tasks)
	changed("turnConfig", before.TurnConfig, now.TurnConfig)
	changed("notify", before.Notify, now.Notify)
	changed("listen", before.Listen, now.Listen)
	changed("origins", before.Origins, now.Origins)
	changed("workflows", before.Workflows, now.Workflows)
	return lines
}

func agentName(a *Agent) string { a.Line = 0; return a.Name }

func channelName(c *Channel) string { return c.Name }

// byName maps the elements of a list to copies without their lines.
func byName[T any](list []T, name func(*T) string) map[string]T {
	all := make(map[string]T, len(list))
	for _, one := range list {
		all[name(&one)] = one
	}
	return all
}

func named[T any](kind string, before, now map[string]T) (lines []string) {
	for name, was := range before {
		is, still := now[name]
		switch {
		case !still:
			lines = append(lines, fmt.Sprintf("%s %s removed", kind, name))
		case !reflect.DeepEqual(was, is):
			lines = append(lines, fmt.Sprintf("%s %s changed", kind, name))
		}
	}
	for name := range now {
		if _, known := before[name]; !known {
			lines = append(lines, fmt.Sprintf("%s %s added", kind, name))
		}
	}
	slices.Sort(lines)
	return lines
}
