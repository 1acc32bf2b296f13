"""What is asked of every client, one file for each area; a file is found by being here."""
