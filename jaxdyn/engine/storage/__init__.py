"""How results are kept: folders, shards and the cache. Knows only arrays, names and seeds."""
