// Package core is the map of the house: it holds no code, only the plan.
//
// Cairn runs stateful circuits, checkpoints them to local disk and pushes the newest checkpoint to object storage through
// out-of-process plugins. Each folder is one room with one job; a floor may use the floors below it, never those beside or above,
// save where the table in floorplan_test.go says so.
//
//	sdk/             floor 0  the contract a plugin author reads: Target, Body, errors, config schema
//	  internal/pb/            the wire: .proto and generated code
//	  client/        floor 0  Go client of the HTTP API
//	  rpc/           floor 1  the only room that knows gRPC: handshake, serve, client, server
//	  blobtarget/    floor 1  any gocloud.dev bucket as a Target, with hooks for the vendor's own ways
//	  sdktest/       floor 2  the exam: cases as data, the mem and faulty targets; starts no process
//	core/
//	  trigger/       floor 0  pure decision: facts in, decision out
//	  checkpoint/    floor 0  checkpoints on local disk: create, publish, list, pin, collect
//	  repository/    floor 0  what lies on a target: keys, format, epoch, commit, pack; pure codecs and plans
//	  circuit/       floor 1  the Circuit interface and the loop that drives one
//	  pluginhost/    floor 1  plugin processes: runner, supervisor, logs
//	  syncer/        floor 1  push and pull between disk and a store; follows it, keeps it tidy, proves and repairs what it holds
//	  config/        floor 1  HCL in, typed configuration out
//	  sqlcircuit/    floor 2  the built-in circuit: SQL over streams on embedded SQLite
//	  api/           floor 2  the HTTP API and its OpenAPI document
//	  host/          floor 3  composition: builds all of it from a configuration, starts and stops it in order
//	plugins/file/             a directory as a target
//	plugins/s3/               a bucket of S3, or of a store that speaks its protocol
//	plugins/gcs/              a bucket of Google Cloud Storage
//	plugins/azure/            a container of Azure Blob Storage
//	cmd/host/        floor 4  the command line: flags, signals, exit codes
//	internal/                 for tests only, but wipe
//	  testaddr/               loopback addresses that stay free for the servers of tests
//	  teststore/              real object stores, pinned and started by the tests that need them
//	  rudestore/              a store of our own with three vendors' dialects, and every rudeness of theirs
//	  wipe/                   removes folders that a plugin could write to, whatever it made of them
//
// Flow is one way. At start: file → config → host → pluginhost → syncer → circuit. At work: the loop (circuit) asks the trigger and
// tells a checkpointer or a syncer's worker what to do; a worker reads a checkpoint and writes a store. Up come only values: a
// decision, a finished job, a status snapshot, an error with a code.
package core
