//go:build torture || cloud

package main

// pointsOfALife are the named points that any life with new records passes.
func pointsOfALife() []string {
	return []string{
		"start.opened",
		"publish.files-synced", "publish.manifest-written", "publish.manifest-synced", "publish.renamed", "publish.synced",
		"collect.marked", "collect.renamed", "collect.synced", "collect.removed",
		"push.probe.begin", "push.probe.done", "push.epoch.begin", "push.epoch.done", "push.pack.begin", "push.pack.done", "push.commit.begin", "push.commit.done",
	}
}

// pointsOfARestore are those that only a life on an empty data folder passes.
func pointsOfARestore() []string {
	return []string{"start.identified", "start.pulled", "start.restored", "start.recorded", "start.swapping", "start.swapped"}
}
