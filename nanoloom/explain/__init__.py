"""What became of a model, and where its time goes: reports, for people and programs."""
