"""Schedules by measured times instead of predicted ones."""
