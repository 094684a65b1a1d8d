"""The talks, slide by slide: what each row says, what decides it, its fate, and the page of all rows."""
