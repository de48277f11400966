/* Leaves a process in a session of its own behind, which writes a file later. */
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
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      for (int number = 0; number < 1024; number++) close(number);
      usleep(700000);
      open("late", O_WRONLY | O_CREAT, 0600);
      pause();
    }
    _exit(0);
  }
  wait(NULL);
  puts("gone");
  return 0;
}
