"""What people type at a viewer: whose keys go where, which keys are the viewer's own, and the way to the program."""
