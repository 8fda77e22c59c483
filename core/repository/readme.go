package repository

import "fmt"

// ReadmeText is the content of README.txt: what someone who finds the bucket, perhaps years later and without Cairn, has to know.
func ReadmeText(f Format) []byte {
	return fmt.Appendf(nil, `This is a Cairn repository, format %d: checkpoints of the pipeline %q.

  repository  %s
  pipeline    %s
  created     %s by %s

Please do not change, move or delete anything here by hand. "cairn remote list" shows which checkpoints are here, and
"cairn checkpoint restore" brings one back.

  FORMAT.json           what this repository is
  epoch/<number>.json   one for each run of a host that wrote here; the highest holds the repository
  commit/<number>.json.zst   one for each checkpoint, complete and self-contained; those of kind "seal" hold none: each opens a run
  gc/<number>.json      the highest says which commits are gone: those at or below "up_to" that are not in "kept"; there may be none
  pack/<epoch>/<number>/<sha256>   the content: stored chunks one after the other

To read a commit without Cairn:

  zstd -d < commit/NUMBER.json.zst | head -1 | sha256sum   # equals the second line
  zstd -d < commit/NUMBER.json.zst | head -1               # JSON: packs and files

Each file is cut into chunks of %d bytes. A chunk is [index into packs, offset in the pack, stored length, encoding, SHA-256 of the
content]; the encoding is "raw", "zstd" (one zstd frame) or "hole" (zeros, not stored). Put one after the other they are the file.
This file may be deleted; nothing depends on it.
`, FormatVersion, f.PipelineName, f.RepositoryID, f.PipelineID, f.Created.UTC().Format("2006-01-02T15:04:05Z"), f.WrittenBy, ChunkSize)
}
