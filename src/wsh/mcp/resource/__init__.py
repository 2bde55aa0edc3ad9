"""Resources and prompts: what hosts may read without a tool call, and the news about it."""
