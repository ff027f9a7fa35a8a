"""What `arcwise bench` measures: always against a peer, in the same run, as a ratio."""
