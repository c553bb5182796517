"""What people configure: settings, sources, profiles."""
