"""When everything happens: the pipes of all cores, the tasks on the clusters, and the memory they share."""
