package trigger

// The reasons that a Decision can give. They go to the log, to status and into expected test text, so they are part of the API.
const (
	WhyCheckpointAsked = "checkpoint requested"
	WhyCheckpointFirst = "nothing is saved yet"
	WhyCheckpointDue   = "checkpoint interval passed"

	WhySyncAsked = "sync requested"
	WhyPushDue   = "push interval passed"
	WhyPushRetry = "retrying a failed push"

	WhyReplaying     = "replaying"
	WhyBootstrapping = "bootstrapping"
	WhyStepAsked     = "step requested"
	WhyEnoughInput   = "enough input buffered"
	WhyFlushDue      = "input waited long enough"
	WhyStepRetry     = "retrying a step that found the disk full"

	WhyAwaitCheckpoint = "until the next checkpoint"
	WhyAwaitPush       = "until the next push"
	WhyAwaitRetry      = "until the push is retried"
	WhyAwaitFlush      = "until the input has waited long enough"
	WhyAwaitSpace      = "until a step is retried that found the disk full"
	WhyIdle            = "until something happens"
)
