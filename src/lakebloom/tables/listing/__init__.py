"""Which files a directory has now, locally and in object stores."""
