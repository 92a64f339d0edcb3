"""From bytes to facts: strict readers of headers, shards, configs and JSON text."""
