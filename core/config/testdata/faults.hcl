host {
  listen    = "0.0.0.0:7070"
  log_level = "loud"
}

target "offsite" {
  plugin = "store"

  config {
    bukket = "backups"
    key    = env("OFFSITE_SECRET_KEY")
  }
}

pipeline "strikes" {
	circuit "sql" {
		schema = file("schema.sql")

		input "strikes" {
			apply = file("insert.sql")
		}
	}

  storage "memory" {
    sync "offsite" {
      push_interval = "0s"
    }
  }
}
