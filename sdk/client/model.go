package client

import (
	"time"

	"github.com/google/uuid"
)

// PipelineView is what GET /v0/pipelines/{name} shows.
type PipelineView struct {
	Name         string      `json:"name"`
	ID           uuid.UUID   `json:"id" doc:"Identity of the pipeline; its repositories carry it."`
	State        string      `json:"state" enum:"stopped,starting,running,paused,standby,stopping,failed"`
	DesiredState string      `json:"desired_state" enum:"running,paused,stopped,standby" doc:"Survives a restart of the host."`
	Error        string      `json:"error,omitempty" doc:"Why the state is failed, or what a stop did not get done."`
	Doing        string      `json:"doing,omitempty" doc:"What the loop is doing or waiting for."`
	Incarnation  *uuid.UUID  `json:"incarnation_uuid" doc:"This run of the pipeline; null before the first."`
	StartedFrom  string      `json:"started_from,omitempty" doc:"Which state this run began with, and why."`
	Step         uint64      `json:"step" doc:"Last committed step of the live state."`
	Checkpoint   *Point      `json:"checkpoint" doc:"Newest local checkpoint; null when there is none."`
	Circuit      CircuitView `json:"circuit"`

	Inputs          []InputStats   `json:"inputs" doc:"What the inputs have taken, and what is wrong with them; empty while the pipeline does not run."`
	StepError       string         `json:"step_error,omitempty" doc:"Why steps wait and input is not taken (a full disk); left out when the last step got through."`
	CheckpointError string         `json:"checkpoint_error,omitempty" doc:"Why the last attempt at a local checkpoint failed; left out when it succeeded."`
	Storage         StorageView    `json:"storage"`
	Schedule        CheckpointRule `json:"checkpoint_schedule"`
	Standby         *StandbyView   `json:"standby" doc:"How it follows its target; null when it is no standby."`
	Targets         []TargetView   `json:"targets"`
}

// Point names a checkpoint and the step it covers.
type Point struct {
	UUID    uuid.UUID `json:"uuid"`
	Step    uint64    `json:"step"`
	Created time.Time `json:"created"`
}

// CircuitView describes the circuit.
type CircuitView struct {
	Type   string   `json:"type"`
	Inputs []string `json:"inputs"`
}

// StorageView is the effective storage block.
type StorageView struct {
	Type               string     `json:"type" enum:"file,object,memory"`
	Path               string     `json:"path,omitempty"`
	StartFrom          string     `json:"start_from_checkpoint,omitempty"`
	FailIfNoCheckpoint bool       `json:"fail_if_no_checkpoint"`
	Sync               []SyncView `json:"sync" doc:"Where checkpoints go: of file storage its sync blocks, of object storage its one repository."`
	Seed               *SeedView  `json:"seed" doc:"Another repository to begin with; null when none is configured."`
}

// SyncView is one effective sync block.
type SyncView struct {
	Target         string         `json:"target"`
	Plugin         string         `json:"plugin"`
	Prefix         string         `json:"prefix"`
	PushInterval   string         `json:"push_interval,omitempty" doc:"Left out: pushes on request only." example:"30s"`
	PullInterval   string         `json:"pull_interval,omitempty" doc:"While the pipeline is a standby. Left out: it does not follow this target." example:"5s"`
	PushOnShutdown bool           `json:"push_on_shutdown"`
	Fencing        string         `json:"fencing" enum:"required,advisory"`
	Retention      *RetentionView `json:"retention" doc:"Null: every commit is kept."`
	Config         map[string]any `json:"config" doc:"The target's configuration; secrets as dots."`
}

// CheckpointRule is the effective checkpoint block.
type CheckpointRule struct {
	Interval string `json:"interval,omitempty" doc:"Left out: on request and at a stop only." example:"10s"`
	Keep     int    `json:"keep"`
}

// TargetView is how a pipeline stands with one of its targets.
type TargetView struct {
	Target    string      `json:"target"`
	State     string      `json:"state" enum:"ready,pushing,held,fenced,refused,unavailable" doc:"held: the repository's history is not ours. fenced: another writer took over. refused: it cannot be used as it is. unavailable: it did not answer when this host started, or when it was to be claimed, and has not since."`
	Reason    string      `json:"reason,omitempty" doc:"Why it is not ready, and the way on."`
	TakenBy   *Holder     `json:"taken_by" doc:"Fenced: who holds the repository now; null otherwise."`
	Fencing   string      `json:"fencing" enum:"required,advisory" doc:"advisory: two writers cannot be told apart on this target."`
	Warnings  []string    `json:"warnings" doc:"What is unsafe or does not work there though pushes go on; empty when nothing is."`
	Rights    *RightsView `json:"rights" doc:"What the store was last seen to allow; null before the first probe."`
	LookedAt  *time.Time  `json:"looked_at" doc:"When it was last asked whether the repository is still this host's: by a push, or once when the pipeline started. A request for status asks nothing, so what happened there since is not known; null when it never was."`
	Committed *Point      `json:"committed" doc:"Newest checkpoint committed there by this pipeline; null when there is none."`
	InDoubt   *Point      `json:"in_doubt" doc:"What committed was, until the repository was seen to be gone, to lack that commit or a newer one, or to be put back: what of it can be restored from there is not known, until a push is confirmed. Null otherwise."`
	Behind    *uint64     `json:"behind_steps" doc:"Steps of the live state that a loss of this machine would take, if only this target were left; null when nothing is committed."`
	Proof     *ProofView  `json:"proof" doc:"Last verification of the repository that found nothing wrong; null when there was none, or when what it proved has gone or is known to be broken."`
	Deeper    []ProofView `json:"deeper_proofs,omitempty" doc:"Older verifications that found nothing wrong and went deeper than all after them, newest first."`
	Damage    *DamageView `json:"damage" doc:"What is known to be broken there, until a verification as deep as the one that found it finds it whole, or retention lets it go; null when nothing is."`
	Verifying *Progress   `json:"verifying" doc:"How far the verification is that reads chunks there for somebody now; null when none does."`
	NextPush  *time.Time  `json:"next_push" doc:"When the next periodic push falls due; null when none is scheduled."`
	Running   *JobView    `json:"running" doc:"The push job that runs; null when none does."`
	Plugin    *PluginView `json:"plugin"`
	Jobs      []JobView   `json:"jobs" doc:"The last push jobs that ended, newest last."`
	Failures  int         `json:"failures" doc:"Periodic jobs that failed in a row."`
	Trouble   string      `json:"trouble,omitempty" doc:"What went wrong with this host's own records of the target."`

	Maintenance *MaintenanceView `json:"maintenance" doc:"The last run of retention and sweep; null before the first."`
}

// Holder is who claimed a repository.
type Holder struct {
	Epoch       uint64     `json:"epoch"`
	Host        string     `json:"host,omitempty" doc:"Left out, as the rest, where the epoch's object could not be read."`
	Writer      *uuid.UUID `json:"writer_uuid" doc:"The storage path on that host."`
	Incarnation *uuid.UUID `json:"incarnation_uuid" doc:"The run of its pipeline."`
	Since       *time.Time `json:"since" doc:"When it claimed, by its own clock."`
}

// RightsView is what a probe has seen of a store: it really created, read, listed and deleted objects below the prefix.
type RightsView struct {
	ProbedAt    time.Time `json:"probed_at"`
	Read        RightView `json:"read" doc:"An object whole and a range of it; an absent one is told to be absent."`
	Write       RightView `json:"write" doc:"An object is created."`
	List        RightView `json:"list" doc:"What was just written is listed, in order."`
	Delete      RightView `json:"delete" doc:"An object is removed, and then absent."`
	Conditional RightView `json:"conditional" doc:"A second create of one key is refused and changes nothing."`
	ClockAhead  string    `json:"clock_ahead,omitempty" doc:"How far the store's clock is ahead of this host's; negative: behind. Left out: the store tells no time." example:"1.2s"`
	ClockWithin string    `json:"clock_within,omitempty" doc:"How exact that is." example:"1.1s"`
}

// RightView is one right.
type RightView struct {
	State    string `json:"state" enum:"ok,denied,failed,unknown" doc:"denied: the store refuses who asks. failed: it answers, and not as the contract says. unknown: no answer that tells, or not tried."`
	Code     string `json:"code,omitempty" doc:"Class of the error." example:"PermissionDenied"`
	Error    string `json:"error,omitempty"`
	Provider string `json:"provider,omitempty" doc:"The store's own code and request id."`
	Hint     string `json:"hint,omitempty" doc:"What can be done about it."`
	Took     string `json:"took" example:"120ms"`
}

// PluginView is the process behind a target.
type PluginView struct {
	Name     string    `json:"name"`
	Version  string    `json:"version,omitempty"`
	State    string    `json:"state" enum:"starting,ready,degraded,broken,stopped"`
	Since    time.Time `json:"since"`
	Restarts int       `json:"restarts"`
	LastExit string    `json:"last_exit,omitempty"`
}

// JobView is one push job.
type JobView struct {
	ID         uint64     `json:"id"`
	UUID       uuid.UUID  `json:"checkpoint_uuid"`
	Trigger    string     `json:"trigger" enum:"periodic,requested,shutdown,checkpoint,repair"`
	State      string     `json:"state" enum:"running,succeeded,failed,held,fenced,cancelled,unresolved"`
	Attempts   int        `json:"attempts" doc:"The most that any one call to the store needed."`
	Started    time.Time  `json:"started"`
	Finished   *time.Time `json:"finished"`
	Bytes      int64      `json:"bytes" doc:"Bytes stored by the job."`
	Objects    int64      `json:"objects" doc:"Objects stored by the job."`
	Requests   int64      `json:"requests" doc:"Calls made to the store."`
	Error      string     `json:"error,omitempty"`
	Next       *time.Time `json:"next" doc:"While it runs: when a failed call is made again."`
	StuckSince *time.Time `json:"stuck_since" doc:"While it runs: since when no call has succeeded."`
}

// CheckpointStarted answers POST …/checkpoint.
type CheckpointStarted struct {
	Sequence    uint64    `json:"checkpoint_sequence_number" doc:"Compare with success of checkpoint_status."`
	Incarnation uuid.UUID `json:"incarnation_uuid"`
}

// CheckpointStatus tells how far the requested checkpoints are, within one incarnation.
type CheckpointStatus struct {
	Success     *uint64            `json:"success" doc:"Greatest sequence number whose checkpoint is published."`
	Failure     *CheckpointFailure `json:"failure"`
	Incarnation *uuid.UUID         `json:"incarnation_uuid"`
}

// CheckpointFailure is the last request that failed.
type CheckpointFailure struct {
	Sequence uint64    `json:"sequence_number"`
	Error    string    `json:"error"`
	FailedAt time.Time `json:"failed_at"`
}

// CheckpointView is one checkpoint, local or on a target.
type CheckpointView struct {
	UUID    uuid.UUID `json:"uuid"`
	Step    uint64    `json:"steps"`
	Size    int64     `json:"size" doc:"Bytes of its files."`
	Created time.Time `json:"created"`
	Where   []string  `json:"where" doc:"\"local\" or names of targets."`
	Number  uint64    `json:"number,omitempty" doc:"Commit number on these targets; a checkpoint that was committed under several numbers is listed under each."`
	Broken  []string  `json:"broken,omitempty" doc:"Those of the targets on which the host knows the commit to be broken, so that it cannot be restored whole from there; left out when it knows of none."`
}

// SyncStarted answers POST …/checkpoint/sync.
type SyncStarted struct {
	Checkpoint  uuid.UUID `json:"checkpoint_uuid"`
	Incarnation uuid.UUID `json:"incarnation_uuid"`
}

// SyncStatus tells what is safe elsewhere. success moves only by requested syncs, periodic only by periodic ones, both only after the
// commit exists on every target that is not fenced.
type SyncStatus struct {
	Success         *uuid.UUID   `json:"success" doc:"Newest checkpoint that a requested sync committed to every target."`
	Failure         *SyncFailure `json:"failure" doc:"Last requested sync that failed."`
	Periodic        *uuid.UUID   `json:"periodic" doc:"Newest checkpoint that a periodic sync (push_interval) committed to every target."`
	PeriodicFailure *SyncFailure `json:"periodic_failure" doc:"Last periodic sync, if it failed."`
	Running         *uuid.UUID   `json:"running" doc:"Checkpoint that is being pushed now."`
	Incarnation     *uuid.UUID   `json:"incarnation_uuid"`
	Targets         []TargetSync `json:"targets"`
}

// SyncFailure is a sync that failed.
type SyncFailure struct {
	UUID     uuid.UUID `json:"uuid"`
	Error    string    `json:"error"`
	FailedAt time.Time `json:"failed_at"`
}

// TargetSync is SyncStatus for one target.
type TargetSync struct {
	Target          string       `json:"target"`
	State           string       `json:"state" enum:"ready,pushing,held,fenced,refused,unavailable"`
	Fencing         string       `json:"fencing" enum:"required,advisory" doc:"advisory: two writers cannot be told apart on this target."`
	Warnings        []string     `json:"warnings" doc:"What is unsafe or does not work there though pushes go on; empty when nothing is."`
	Rights          *RightsView  `json:"rights" doc:"What the store was last seen to allow; null before the first probe."`
	Success         *uuid.UUID   `json:"success"`
	Failure         *SyncFailure `json:"failure"`
	Periodic        *uuid.UUID   `json:"periodic"`
	PeriodicFailure *SyncFailure `json:"periodic_failure"`
	Queued          []uuid.UUID  `json:"queued" doc:"Requested syncs that wait, in the order asked."`
	Running         *uuid.UUID   `json:"running"`
	RunningSince    *time.Time   `json:"running_since" doc:"A job that does not end shows here since when."`
}

// Stats are the numbers of a pipeline.
type Stats struct {
	Step     uint64       `json:"step"`
	Buffered int          `json:"buffered" doc:"Records that wait for a step."`
	Waiting  string       `json:"waiting,omitempty" doc:"Why no step runs though records may be there."`
	Size     int64        `json:"state_bytes" doc:"Bytes of the live state on disk, as far as the circuit counts them."`
	Inputs   []InputStats `json:"inputs"`
}

// InputStats are the numbers of one input.
type InputStats struct {
	Name     string `json:"name"`
	Applied  int64  `json:"applied" doc:"Records since the state began."`
	Rejected int64  `json:"rejected" doc:"Records of them that are rows of cairn_errors."`
	Buffered int    `json:"buffered"`
	Stopped  string `json:"stopped,omitempty" doc:"Why the input takes no more until the pipeline is stopped and started; the other inputs go on."`
	Remedy   string `json:"remedy,omitempty" doc:"How a stopped input begins again, once its reason is mended."`
	Note     string `json:"note,omitempty" doc:"What its reader noticed: a file that is gone, a pattern that matches nothing."`
}

// Ingested answers POST …/ingress/{input}.
type Ingested struct {
	Step         uint64 `json:"step"`
	Applied      int    `json:"applied"`
	Rejected     int    `json:"rejected"`
	FirstRefusal string `json:"first_refusal,omitempty" doc:"Why the first of the rejected records was refused; all are rows of cairn_errors."`
	Duplicate    bool   `json:"duplicate" doc:"The source's position was already at or above seq: nothing was applied."`
	Note         string `json:"note,omitempty" doc:"What the sender should know of the batch: that its only line was taken for a CSV header."`
	Waited       string `json:"waited,omitempty" enum:"checkpoint,commit" doc:"What the answer waited for and got."`
	WaitError    string `json:"wait_error,omitempty" doc:"Why the answer, a 202, did not get what it waited for. The batch is applied all the same: sent again with its source and seq it is a duplicate, and waits again."`
}

// Position answers GET …/ingress/{input}.
type Position struct {
	Source string `json:"source"`
	Seq    uint64 `json:"seq" doc:"Greatest seq that the live state holds; 0 = none. Resume after it."`
}
