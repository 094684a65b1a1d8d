"""Storage of results: output folders, shards and the cache. Knows only arrays, names and seeds."""
