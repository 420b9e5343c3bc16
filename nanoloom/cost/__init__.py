"""What a scheduled nest costs, from the nest and a target's facts alone."""
