"""The console script as a real child process."""
