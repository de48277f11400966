/* Makes empty files in a private directory and says how many went in. */
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

int main(void) {
  long made = 0;
  for (; made < 1000000; made++) {
    char name[64];
    snprintf(name, sizeof name, "/tmp/%ld", made);
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    if (fd < 0) break;
    close(fd);
  }
  printf("%ld\n", made);
  return 0;
}
