CREATE TABLE by_state (
  state   TEXT PRIMARY KEY,
  strikes INTEGER NOT NULL,
  cost    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE by_species (
  species TEXT NOT NULL,
  size    TEXT NOT NULL,
  strikes INTEGER NOT NULL,
  PRIMARY KEY (species, size)
) WITHOUT ROWID;
