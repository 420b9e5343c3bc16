"""What a user holds: programs, sessions, and what loads them."""
