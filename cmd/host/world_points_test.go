//go:build torture || cloud

package main

import (
	"slices"
	"strings"
)

// pointsOfALife are the named points that any life with new records passes.
func pointsOfALife() []string {
	return []string{
		"start.marked", "start.opened",
		"publish.files-synced", "publish.manifest-written", "publish.manifest-synced", "publish.renamed", "publish.synced",
		"collect.marked", "collect.renamed", "collect.synced", "collect.removed",
		"push.probe.begin", "push.probe.done", "push.epoch.begin", "push.epoch.done", "push.pack.begin", "push.pack.done", "push.commit.begin", "push.commit.done",
	}
}

// pointsOfARestore are those that only a life on an empty data folder passes.
func pointsOfARestore() []string {
	return []string{"start.identified", "start.pulled", "start.restored", "start.recorded", "start.swapping", "start.swapped"}
}

// pointsOfAPush are those of pointsOfALife at which a push stands.
func pointsOfAPush() []string {
	return slices.DeleteFunc(pointsOfALife(), func(p string) bool { return !strings.HasPrefix(p, "push.") })
}

// pointsOfUpkeep are those that a life passes whose host retires and sweeps.
func pointsOfUpkeep() []string {
	return []string{
		"push.gc.begin", "push.gc.done", "delete.commit.begin", "delete.commit.amid", "delete.commit.done", "delete.gc.begin", "delete.gc.done",
		"delete.pack.begin", "delete.pack.amid", "delete.pack.done",
	}
}

// pointsOfAnActivation are those that a standby passes on its way to be the primary.
func pointsOfAnActivation() []string {
	return []string{
		"activate.desired", "push.probe.begin", "push.epoch.begin", "push.epoch.done", "push.commit.begin", "push.commit.done", "activate.claimed",
		"publish.files-synced:2", "publish.renamed:2", "activate.pulled", "start.identified", "start.restored", "start.recorded", "start.swapping",
		"start.swapped", "start.marked", "start.opened",
	}
}

// pointsOfAnOfflineRestore are those that `cairn checkpoint restore` passes.
func pointsOfAnOfflineRestore() []string {
	return []string{
		"restore.staged", "fetch.pack.begin", "fetch.pack.done", "restore.filled", "restore.verified", "restore.synced", "restore.swapping", "restore.swapped",
	}
}
