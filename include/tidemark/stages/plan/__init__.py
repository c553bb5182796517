"""What has to be done with each document, and why."""
