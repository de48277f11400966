/* Fills a private directory and says how much went in. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments) {
  static char piece[1 << 16];
  char name[4096];
  snprintf(name, sizeof name, "%s/filler", arguments[count - 1]);
  int fd = open(name, O_WRONLY | O_CREAT, 0600);
  long sum = 0;
  for (ssize_t n; (n = write(fd, piece, sizeof piece)) > 0;) sum += n;
  printf("%ld %s\n", sum, errno == ENOSPC ? "full" : "other");
  return 0;
}
