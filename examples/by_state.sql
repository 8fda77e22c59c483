INSERT INTO by_state (state, strikes, cost)
VALUES (:record ->> '$."Origin State"', 1, CAST(:record ->> '$."Cost Total $"' AS INTEGER))
ON CONFLICT (state) DO UPDATE SET
  strikes = strikes + 1,
  cost    = cost + excluded.cost
