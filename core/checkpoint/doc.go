// Package checkpoint keeps one pipeline's storage path on local disk: its lock, its identity file and its checkpoints.
//
//	<path>/lock                              flock: one process per path; holds the pid of the last one
//	<path>/pipeline.json                     Pipeline
//	<path>/state/                            the circuit's live directory (made and owned by the circuit)
//	<path>/state/.cairn-opened-by            the run that opened it last, by which one that is moved here from elsewhere is known
//	<path>/checkpoints/<uuid v7>/            one published checkpoint: files/ and checkpoint.json
//	<path>/checkpoints/.tmp-<uuid v7>/       a checkpoint being written; garbage after a crash
//	<path>/checkpoints/.pull-<uuid v7>/      a pull being written; resumed by its id after a crash
//	<path>/checkpoints/.old-<uuid v7>/       a checkpoint being removed; garbage after a crash
//	<path>/checkpoints/.was-<uuid v7>/       a damaged checkpoint that gives way to a whole one; put back after a crash between
//	<path>/checkpoints/damaged-<uuid v7>/    a damaged checkpoint, kept for people
//	<path>/checkpoints/.last-id              the greatest id of a removed checkpoint, when no directory bears a greater one
//	<path>/sync/<target>.json                job records, written by the syncer
//
// A renamed directory is a checkpoint and nothing else is: listing reads the directory, there is no catalog to lose. Everything is
// durable before it is said to be: files are synced, then checkpoint.json, then the directory is renamed, then its parent is synced,
// and only then does Publish return. Reads never write.
//
// The circuit's checkpointer writes drafts and publishes them; the syncer pins what it pushes and publishes what it pulls; the host
// opens the Dir, collects old checkpoints and reads lists. All methods may be called from any goroutine. The goroutines that hash
// and sync files are started and awaited inside the call that needs them; none outlives it.
package checkpoint
