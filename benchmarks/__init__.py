"""Speed, memory and compile time of nanoloom beside its peers, in one run each."""
