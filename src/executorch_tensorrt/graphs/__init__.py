"""What the exporter and the engine builders know of torch's graphs: shapes and their ranges, operators, sources."""
