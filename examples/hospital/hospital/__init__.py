"""A hospital that publishes its visits every week: records come in by day, a report goes out by week."""
