INSERT INTO by_species (species, size, strikes)
VALUES (:record ->> '$."Wildlife Species"', :record ->> '$."Wildlife Size"', 1)
ON CONFLICT (species, size) DO UPDATE SET strikes = strikes + 1
