package repository

import (
	_ "embed" // restore.sh becomes part of the program
	"fmt"
)

// restoreScript reads a repository without Cairn. It stands in every README.txt and in docs/format.md; `make by-hand` runs it.
//
//go:embed restore.sh
var restoreScript string

// ReadmeText is the content of README.txt: what someone who finds the bucket, perhaps in ten years and without Cairn, has to know and to do.
func ReadmeText(f Format) []byte {
	return fmt.Appendf(nil, `This is a Cairn repository, format %d: checkpoints of the pipeline %q.

  repository  %s
  pipeline    %s
  created     %s by %s

A checkpoint is the files of a program's state at one moment. Nothing here is encrypted, and nothing outside is needed to read it.
Please do not change, move or delete anything here by hand. "cairn remote list" shows which checkpoints are here, and
"cairn checkpoint restore" brings one back. Without Cairn:

  1. Copy everything below the folder of this file to a disk, keeping the names. Call that folder REPOSITORY.
  2. Have a POSIX shell, zstd, jq, and sha256sum, base64, head and tail as on any Linux.
  3. This file ends with a script. Take it out:      sed -n '/^#!/,$p' README.txt >restore.sh
  4. See which checkpoints are there:                sh restore.sh REPOSITORY
  5. Bring one back into a new folder:               sh restore.sh REPOSITORY latest FOLDER

Every byte is checked against its SHA-256 on the way: what is damaged or missing is named, and FOLDER is complete or not there.

What lies here:

  FORMAT.json           what this repository is
  epoch/<number>.json   one for each run of a host that wrote here; the highest holds the repository
  commit/<number>.json.zst   one for each checkpoint, complete and self-contained; those of kind "seal" hold none: each opens a run
  gc/<number>.json      the highest says which commits are gone: those at or below "up_to" that are not in "kept"; there may be none
  pack/<epoch>/<number>/<sha256>   the content: stored chunks one after the other; the name ends with the SHA-256 of the whole pack
  pin/<name>.json       what an operator asked to keep; only retention reads it
  probe/...             what a host tries its rights with; no part of the repository

A commit is a zstd frame around two lines: one JSON object, and the SHA-256 of that line with its newline.

  zstd -d < commit/NUMBER.json.zst | head -1 | sha256sum   # equals the second line
  zstd -d < commit/NUMBER.json.zst | head -1 | jq .        # packs and files

Each file is cut into chunks of %d bytes; the last may be shorter. A chunk is [index into packs, offset in the pack, stored length,
encoding, SHA-256 of the content]; the encoding is "raw", "zstd" (one zstd frame) or "hole" (zeros, not stored). Put one after the other
they are the file. The restored files are plain; a state of a circuit of kind "sql" is a SQLite database, state.db with state.db-wal.
This file may be deleted; nothing depends on it.

%s`, FormatVersion, f.PipelineName, f.RepositoryID, f.PipelineID, f.Created.UTC().Format("2006-01-02T15:04:05Z"), f.WrittenBy, ChunkSize, restoreScript)
}
