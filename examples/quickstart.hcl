# One pipeline that counts bird strikes, checkpoints its tables every few seconds and pushes the newest checkpoint every ten seconds.
# Run it from the top of the repository: make run

host {
  listen     = "127.0.0.1:7070"
  data_dir   = "../data"
  plugin_dir = "../bin"
}

# A target is a configured store. This one is a folder, served by the plugin cairn-plugin-file.
target "offsite" {
  plugin = "file"

  config {
    path   = abspath("../data-offsite")
    create = true # make the folder; leave it out where a disk may be unmounted, so that its absence stops a start
  }
}

pipeline "strikes" {
  circuit "sql" {
    schema    = file("schema.sql")
    max_batch = 500

    input "strikes" {
      file {
        path   = "birdstrikes.csv"
        format = "csv"
        follow = true
      }
      apply = [file("by_state.sql"), file("by_species.sql")]
    }

    # More of them can be sent: POST /v0/pipelines/strikes/ingress/reports?source=me&seq=1
    input "reports" {
      http {}
      apply = [file("by_state.sql"), file("by_species.sql")]
    }
  }

  checkpoint {
    interval = "3s"
    keep     = 2
  }

  storage "file" {
    start_from_checkpoint = "latest"

    sync "offsite" {
      push_interval    = "10s"
      push_on_shutdown = true
    }
  }
}
