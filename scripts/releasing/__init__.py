"""The steps of `scripts/release`: gates, artefacts, installations, notes."""
