# A host that keeps one pipeline safe in an SQLite database.
#
#   CGO_ENABLED=0 go build -o cairn-plugin-sqlite .
#   cairn plugin check ./cairn-plugin-sqlite --config cairn.hcl
#   cairn run --config cairn.hcl

host {
  data_dir = "data"
}

plugin "sqlite" {
  path = "cairn-plugin-sqlite"
  dev  = true # no checks of checksum and permissions; leave it out where it matters
}

target "offsite" {
  plugin = "sqlite"

  config {
    path   = abspath("offsite.db")
    create = true # leave it out where a disk may be unmounted
  }
}

pipeline "notes" {
  circuit "sql" {
    schema = "CREATE TABLE notes (text TEXT)"

    input "notes" {
      http {}
      apply = "INSERT INTO notes VALUES (:record ->> 'text')"
    }
  }

  checkpoint {
    interval = "5s"
  }

  storage "file" {
    start_from_checkpoint = "latest"

    sync "offsite" {
      push_interval = "10s"
    }
  }
}
