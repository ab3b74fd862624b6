"""The release spec: one YAML file, checked whole before any data is opened."""
