"""Checkpoints: where they come from (resolve), and one read-only view of them (view)."""
