"""First-party model families, one folder each; installed as edgeserve_families.<name>."""
